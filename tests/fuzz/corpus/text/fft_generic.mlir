"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8x8xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8x8xf32>):
    %0 = "stablehlo.fft"(%arg0) <{fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<8x8xf32>) -> tensor<8x5xcomplex<f32>>
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
