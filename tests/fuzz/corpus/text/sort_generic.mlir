"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9xi32>, tensor<9xi64>) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<9xi32>, %arg1: tensor<9xi64>):
    %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>, %arg4: tensor<i64>, %arg5: tensor<i64>):
      %1 = "stablehlo.compare"(%arg2, %arg3) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%1) : (tensor<i1>) -> ()
    }) : (tensor<9xi32>, tensor<9xi64>) -> (tensor<9xi32>, tensor<9xi64>)
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
