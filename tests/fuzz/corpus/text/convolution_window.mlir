module {
  func.func @main(%arg0: tensor<1x8x8x4xf32>, %arg1: tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [2, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 2], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x4xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32>
    return %0 : tensor<1x4x8x4xf32>
  }
}
