module @"a b" attributes {a.arr = [1, 2 : i32, 3.000000e+00], a.big = 1.000000e+300 : f64, a.d = dense<[1, 2]> : tensor<2xi8>, a.e = array<i64>, a.f = 9.99999974E-6 : f32, a.i1 = true, a.idx = 4 : index, a.inf = 0x7F800000 : f32, a.neg = -3 : i8, a.str = "a\22b\0Ac\\", a.tt = tensor<2xf32>, a.u = 200 : ui8, a.unit, mhlo.num_partitions = 2 : i32} {
  func.func private @decl(tensor<f32>, tensor<2xf32> {a.b}) -> (tensor<f32> {a.c = "x"}) attributes {foo.bar = 1 : i64}
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "x"}, tensor<f32>) attributes {execution_thread = "x"} {
    %cst = stablehlo.constant dense<[1.000000e+00, 1.000000e-01, 1.000000e-30, 3.40282347E+38, 0x7FC00000, 0xFF800000, 0x4CEB79A3, 1.17549435E-38, 0x4B800000, -0.000000e+00]> : tensor<10xf32>
    %cst_0 = stablehlo.constant dense<[1.000000e+00, 9.997550e-02, 6.550400e+04, 1.192090e-07, 0x7C00]> : tensor<5xf16>
    %cst_1 = stablehlo.constant dense<[1.000000e+00, 1.000980e-01, 6.553600e+04, 1.001170e-07]> : tensor<4xbf16>
    %cst_2 = stablehlo.constant dense<[1.000000e+00, 1.000000e-01, 1.000000e+300, 9.9999999999999995E-8, 3.1415926535897931]> : tensor<5xf64>
    %cst_3 = stablehlo.constant dense<[(1.000000e+00,2.000000e+00), (0.000000e+00,-0.000000e+00)]> : tensor<2xcomplex<f32>>
    %cst_4 = stablehlo.constant dense<(1.000000e+00,2.000000e+00)> : tensor<2xcomplex<f32>>
    %c = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %c_5 = stablehlo.constant dense<> : tensor<0x3xi1>
    %c_6 = stablehlo.constant dense<[[-1, 7], [1, 2]]> : tensor<2x2xi4>
    %cst_7 = stablehlo.constant dense<[1.000000e+00, 1.015630e-01, 4.480000e+02]> : tensor<3xf8E4M3FN>
    %c_8 = stablehlo.constant dense<[255, 0]> : tensor<2xui8>
    %c_9 = stablehlo.constant dense<[1, 2]> : tensor<2xui8>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %output, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%arg0, %arg0, %arg0) <{epsilon = 1.000000e-03 : f32, feature_index = 0 : i64}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %batch_mean, %cst_10 : tensor<4xf32>, tensor<f32>
  }
}
