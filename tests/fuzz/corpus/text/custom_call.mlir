module {
  func.func @main(%arg0: tensor<8xf32>) {
    %0 = stablehlo.custom_call @foo(%arg0) {api_version = 4 : i32, backend_config = {n = 3 : i64}, operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<8xf32>) -> tensor<8xf32>
    return
  }
}
