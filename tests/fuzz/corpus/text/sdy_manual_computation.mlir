module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func private @"<lambda>"(tensor<4x4xf32>) -> tensor<4x4xf32>
  func.func @main(%arg0: tensor<8x16xf32>) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<4x4xf32>) {
      %1 = func.call @"<lambda>"(%arg1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      sdy.return %1 : tensor<4x4xf32>
    } : (tensor<8x16xf32>) -> tensor<4x16xf32>
    return
  }
}
