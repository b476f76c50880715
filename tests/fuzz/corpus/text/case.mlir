module {
  func.func @main(%arg0: tensor<f32>, %arg1: tensor<3xf32>, %arg2: tensor<i32>) {
    %0 = "stablehlo.case"(%arg2) ({
      %1 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %2 = stablehlo.add %arg1, %1 : tensor<3xf32>
      stablehlo.return %2 : tensor<3xf32>
    }, {
      %1 = stablehlo.sine %arg1 : tensor<3xf32>
      stablehlo.return %1 : tensor<3xf32>
    }) : (tensor<i32>) -> tensor<3xf32>
    return
  }
}
