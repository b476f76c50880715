module {
  func.func @main(%arg0: tensor<9xi32>, %arg1: tensor<9xi64>) {
    %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>, %arg4: tensor<i64>, %arg5: tensor<i64>):
      %1 = stablehlo.compare LT, %arg2, %arg3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<9xi32>, tensor<9xi64>) -> (tensor<9xi32>, tensor<9xi64>)
    return
  }
}
