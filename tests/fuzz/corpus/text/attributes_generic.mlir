"builtin.module"() <{sym_name = "a b"}> ({
  "func.func"() <{arg_attrs = [{}, {a.b}], function_type = (tensor<f32>, tensor<2xf32>) -> tensor<f32>, res_attrs = [{a.c = "x"}], sym_name = "decl", sym_visibility = "private"}> ({
  }) {foo.bar = 1 : i64} : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>), res_attrs = [{jax.result_info = "x"}, {}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    %0 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 1.000000e-01, 1.000000e-30, 3.40282347E+38, 0x7FC00000, 0xFF800000, 0x4CEB79A3, 1.17549435E-38, 0x4B800000, -0.000000e+00]> : tensor<10xf32>}> : () -> tensor<10xf32>
    %1 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 9.997550e-02, 6.550400e+04, 1.192090e-07, 0x7C00]> : tensor<5xf16>}> : () -> tensor<5xf16>
    %2 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 1.000980e-01, 6.553600e+04, 1.001170e-07]> : tensor<4xbf16>}> : () -> tensor<4xbf16>
    %3 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 1.000000e-01, 1.000000e+300, 9.9999999999999995E-8, 3.1415926535897931]> : tensor<5xf64>}> : () -> tensor<5xf64>
    %4 = "stablehlo.constant"() <{value = dense<[(1.000000e+00,2.000000e+00), (0.000000e+00,-0.000000e+00)]> : tensor<2xcomplex<f32>>}> : () -> tensor<2xcomplex<f32>>
    %5 = "stablehlo.constant"() <{value = dense<(1.000000e+00,2.000000e+00)> : tensor<2xcomplex<f32>>}> : () -> tensor<2xcomplex<f32>>
    %6 = "stablehlo.constant"() <{value = dense<[true, false]> : tensor<2xi1>}> : () -> tensor<2xi1>
    %7 = "stablehlo.constant"() <{value = dense<> : tensor<0x3xi1>}> : () -> tensor<0x3xi1>
    %8 = "stablehlo.constant"() <{value = dense<[[-1, 7], [1, 2]]> : tensor<2x2xi4>}> : () -> tensor<2x2xi4>
    %9 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 1.015630e-01, 4.480000e+02]> : tensor<3xf8E4M3FN>}> : () -> tensor<3xf8E4M3FN>
    %10 = "stablehlo.constant"() <{value = dense<[255, 0]> : tensor<2xui8>}> : () -> tensor<2xui8>
    %11 = "stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xui8>}> : () -> tensor<2xui8>
    %12 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %13:3 = "stablehlo.batch_norm_training"(%arg0, %arg0, %arg0) <{epsilon = 1.000000e-03 : f32, feature_index = 0 : i64}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    "func.return"(%13#1, %12) : (tensor<4xf32>, tensor<f32>) -> ()
  }) {execution_thread = "x"} : () -> ()
}) {a.arr = [1, 2 : i32, 3.000000e+00], a.big = 1.000000e+300 : f64, a.d = dense<[1, 2]> : tensor<2xi8>, a.e = array<i64>, a.f = 9.99999974E-6 : f32, a.i1 = true, a.idx = 4 : index, a.inf = 0x7F800000 : f32, a.neg = -3 : i8, a.str = "a\22b\0Ac\\", a.tt = tensor<2xf32>, a.u = 200 : ui8, a.unit, mhlo.num_partitions = 2 : i32} : () -> ()
