module attributes {mhlo.num_replicas = 1 : i32} { func.func public @main(%a: tensor<1xi32>, %b: tensor<2xi32>, %p: tensor<i32>) -> (tensor<2xi32>, tensor<2xi32>, tensor<0xi32>, tensor<3xi32>, tensor<1xi32>) {
%c = stablehlo.pad %a, %p, low = [1], high = [0], interior = [9223372036854775807] : (tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
%d = stablehlo.pad %b, %p, low = [-9223372036854775807], high = [9223372036854775807], interior = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
%e = stablehlo.pad %b, %p, low = [0], high = [-9223372036854775807], interior = [9223372036854775805] : (tensor<2xi32>, tensor<i32>) -> tensor<0xi32>
%f = stablehlo.pad %b, %p, low = [-9223372036854775806], high = [2], interior = [9223372036854775805] : (tensor<2xi32>, tensor<i32>) -> tensor<3xi32>
%g = stablehlo.pad %b, %p, low = [2], high = [-9223372036854775806], interior = [9223372036854775803] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
return %c, %d, %e, %f, %g : tensor<2xi32>, tensor<2xi32>, tensor<0xi32>, tensor<3xi32>, tensor<1xi32> } }