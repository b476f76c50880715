module attributes {mhlo.num_replicas = 1 : i32} { func.func public @main(%a: tensor<2x0xf32>, %b: tensor<0x3xf32>, %c: tensor<0xf32>, %d: tensor<2x0xi8>, %e: tensor<0x3xi8>, %f: tensor<2x0xcomplex<f32>>, %g: tensor<0x3xcomplex<f32>>, %m: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<f32>, tensor<2x3xi32>, tensor<2x3xcomplex<f32>>, tensor<0x2xf32>, tensor<2xf32>, tensor<0xf32>) {
%h = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
%i = stablehlo.dot_general %c, %c, contracting_dims = [0] x [0] : (tensor<0xf32>, tensor<0xf32>) -> tensor<f32>
%j = stablehlo.dot_general %d, %e, contracting_dims = [1] x [0] : (tensor<2x0xi8>, tensor<0x3xi8>) -> tensor<2x3xi32>
%k = stablehlo.dot_general %f, %g, contracting_dims = [1] x [0] : (tensor<2x0xcomplex<f32>>, tensor<0x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
%l = stablehlo.dot_general %b, %m, contracting_dims = [1] x [1] : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<0x2xf32>
%n = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<2x0xf32>, tensor<0xf32>) -> tensor<2xf32>
%o = stablehlo.dot_general %a, %a, batching_dims = [1] x [1], contracting_dims = [0] x [0] : (tensor<2x0xf32>, tensor<2x0xf32>) -> tensor<0xf32>
return %h, %i, %j, %k, %l, %n, %o : tensor<2x3xf32>, tensor<f32>, tensor<2x3xi32>, tensor<2x3xcomplex<f32>>, tensor<0x2xf32>, tensor<2xf32>, tensor<0xf32> } }