module {
  func.func @main(%arg0: tensor<8xf32>) {
    %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<8xf32>
    return
  }
}
