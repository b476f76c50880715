module attributes {mhlo.num_replicas = 1 : i32} { func.func public @main(%a: tensor<0xi32>, %z: tensor<3x0xi32>, %u: tensor<3xi32>) -> (tensor<0xi32>, tensor<0xi32>) {
%b = "stablehlo.scatter"(%a, %z, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], index_vector_dim = 1>}> ({
^bb0(%x: tensor<i32>, %y: tensor<i32>):
  stablehlo.return %y : tensor<i32>
}) : (tensor<0xi32>, tensor<3x0xi32>, tensor<3xi32>) -> tensor<0xi32>
%c = "stablehlo.scatter"(%a, %z, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], index_vector_dim = 1>}> ({
^bb0(%x: tensor<i32>, %y: tensor<i32>):
  %s = stablehlo.multiply %x, %y : tensor<i32>
  %t = stablehlo.add %s, %y : tensor<i32>
  stablehlo.return %t : tensor<i32>
}) : (tensor<0xi32>, tensor<3x0xi32>, tensor<3xi32>) -> tensor<0xi32>
return %b, %c : tensor<0xi32>, tensor<0xi32> } }