"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>):
    %0 = "stablehlo.custom_call"(%arg0) <{api_version = 4 : i32, backend_config = {n = 3 : i64}, call_target_name = "foo", called_computations = [], operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<0> : tensor<1xindex>]}> : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
