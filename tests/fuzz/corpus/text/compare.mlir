module {
  func.func @main(%arg0: tensor<f64>) {
    %0 = stablehlo.compare NE, %arg0, %arg0 : (tensor<f64>, tensor<f64>) -> tensor<i1>
    return
  }
}
