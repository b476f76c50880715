"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9xf32>, tensor<1xi64>) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<9xf32>, %arg1: tensor<1xi64>):
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1>}> : (tensor<9xf32>, tensor<1xi64>) -> tensor<f32>
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
