module attributes {mhlo.num_replicas = 1 : i32} { func.func public @main(%a: tensor<4xf32>, %s: tensor<2xf32>, %z: tensor<0xf32>, %y: tensor<3xf32>, %f: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<0xf32>) {
%c = "stablehlo.select_and_scatter"(%a, %s, %f) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %t = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %t : tensor<i1>
}, {
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %t = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %t : tensor<f32>
}) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
%d = "stablehlo.select_and_scatter"(%a, %z, %f) <{window_dimensions = array<i64: 5>}> ({
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %t = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %t : tensor<i1>
}, {
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %t = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %t : tensor<f32>
}) : (tensor<4xf32>, tensor<0xf32>, tensor<f32>) -> tensor<4xf32>
%e = "stablehlo.select_and_scatter"(%z, %y, %f) <{window_dimensions = array<i64: 1>, padding = dense<[[1, 2]]> : tensor<1x2xi64>}> ({
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %t = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %t : tensor<i1>
}, {
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %t = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %t : tensor<f32>
}) : (tensor<0xf32>, tensor<3xf32>, tensor<f32>) -> tensor<0xf32>
return %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<0xf32> } }