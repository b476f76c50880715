"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9xi1>, tensor<1xi32>, tensor<8xi1>) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<9xi1>, %arg1: tensor<1xi32>, %arg2: tensor<8xi1>):
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i1>, %arg4: tensor<i1>):
      "stablehlo.return"(%arg4) : (tensor<i1>) -> ()
    }) : (tensor<9xi1>, tensor<1xi32>, tensor<8xi1>) -> tensor<9xi1>
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
