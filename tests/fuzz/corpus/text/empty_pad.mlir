module attributes {mhlo.num_replicas = 1 : i32} { func.func public @main(%a: tensor<0xi32>, %b: tensor<2x0xi32>, %c: tensor<3xi32>, %p: tensor<i32>) -> (tensor<3xi32>, tensor<4x1xi32>, tensor<0xi32>, tensor<0xi32>) {
%d = stablehlo.pad %a, %p, low = [1], high = [2], interior = [5] : (tensor<0xi32>, tensor<i32>) -> tensor<3xi32>
%e = stablehlo.pad %b, %p, low = [0, 1], high = [1, 0], interior = [1, 0] : (tensor<2x0xi32>, tensor<i32>) -> tensor<4x1xi32>
%f = stablehlo.pad %c, %p, low = [-1], high = [-2], interior = [0] : (tensor<3xi32>, tensor<i32>) -> tensor<0xi32>
%g = stablehlo.pad %a, %p, low = [0], high = [0], interior = [0] : (tensor<0xi32>, tensor<i32>) -> tensor<0xi32>
return %d, %e, %f, %g : tensor<3xi32>, tensor<4x1xi32>, tensor<0xi32>, tensor<0xi32> } }