module {
  func.func private @chlo.erf.impl(tensor<f64>) -> tensor<f64>
  func.func @main(%arg0: tensor<f64>) {
    %0 = stablehlo.composite "chlo.erf" %arg0 {decomposition = @chlo.erf.impl, version = 1 : i32} : (tensor<f64>) -> tensor<f64>
    return
  }
}
