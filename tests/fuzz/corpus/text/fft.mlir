module {
  func.func @main(%arg0: tensor<8x8xf32>) {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<8x8xf32>) -> tensor<8x5xcomplex<f32>>
    return
  }
}
