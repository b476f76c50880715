module attributes {mhlo.num_replicas = 1 : i32} { func.func public @main() -> (tensor<0xi32>, tensor<3x0xf32>, tensor<3x0x2xi64>, tensor<2x0xf64>, tensor<1x0x4xbf16>) {
%a = stablehlo.iota dim = 0 : tensor<0xi32>
%b = stablehlo.iota dim = 1 : tensor<3x0xf32>
%c = stablehlo.iota dim = 0 : tensor<3x0x2xi64>
%d = stablehlo.constant dense<> : tensor<2x0xf64>
%e = stablehlo.iota dim = 2 : tensor<1x0x4xbf16>
return %a, %b, %c, %d, %e : tensor<0xi32>, tensor<3x0xf32>, tensor<3x0x2xi64>, tensor<2x0xf64>, tensor<1x0x4xbf16> } }