module {
  func.func @main(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32> attributes {mhlo.frontend_attributes = {k = "v"}}
    cond {
      %1 = stablehlo.compare LT, %iterArg, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.while(%iterArg_0 = %iterArg) : tensor<i32>
      cond {
        %2 = stablehlo.compare GE, %iterArg_0, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %2 : tensor<i1>
      } do {
        %2 = stablehlo.add %iterArg_0, %iterArg : tensor<i32>
        stablehlo.return %2 : tensor<i32>
      }
      stablehlo.return %1 : tensor<i32>
    }
    return %0 : tensor<i32>
  }
}
