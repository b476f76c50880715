module {
  func.func @main(%arg0: tensor<3xi32>) {
    %0 = stablehlo.slice %arg0 [0:1] : (tensor<3xi32>) -> tensor<1xi32>
    return
  }
}
