module attributes {mhlo.num_replicas = 1 : i32} { func.func public @main(%a: tensor<0xi32>, %b: tensor<0x3xi32>, %i: tensor<3x1xi32>, %u: tensor<3xi32>, %w: tensor<3x3xi32>, %z: tensor<3x0xi32>) -> (tensor<0xi32>, tensor<0x3xi32>) {
%c = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
^bb0(%x: tensor<i32>, %y: tensor<i32>):
  stablehlo.return %y : tensor<i32>
}) : (tensor<0xi32>, tensor<3x1xi32>, tensor<3xi32>) -> tensor<0xi32>
%d = "stablehlo.scatter"(%b, %i, %w) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
^bb0(%x: tensor<i32>, %y: tensor<i32>):
  %s = stablehlo.add %x, %y : tensor<i32>
  stablehlo.return %s : tensor<i32>
}) : (tensor<0x3xi32>, tensor<3x1xi32>, tensor<3x3xi32>) -> tensor<0x3xi32>
return %c, %d : tensor<0xi32>, tensor<0x3xi32> } }