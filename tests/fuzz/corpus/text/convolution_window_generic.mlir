"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x8x8x4xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<1x8x8x4xf32>, %arg1: tensor<3x3x2x4xf32>):
    %0 = "stablehlo.convolution"(%arg0, %arg1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<[[1, 1], [2, 2]]> : tensor<2x2xi64>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: true, false>, window_strides = array<i64: 2, 1>}> : (tensor<1x8x8x4xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32>
    "func.return"(%0) : (tensor<1x4x8x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
