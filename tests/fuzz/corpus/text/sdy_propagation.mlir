module @m attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @empty_mesh = <[]>
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1, {?}]>}, %arg1: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, ?}, {}], replicated={"x"}>}) {
    %c = stablehlo.iota dim = 0 : tensor<8x16xf32>
    %0 = stablehlo.add %arg0, %c : tensor<8x16xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"y"}]> : tensor<8x16xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{"y"}, {"x"}]> : tensor<8x16xf32>
    sdy.sharding_group %arg1 group_id=0 : tensor<8x16xf32>
    sdy.sharding_group %2 group_id=0 : tensor<8x16xf32>
    %3 = sdy.propagation_barrier %c allowed_direction=BACKWARD : tensor<8x16xf32>
    %4 = stablehlo.while(%w = %3) : tensor<8x16xf32>
    cond {
      %t = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %5 = stablehlo.multiply %w, %0 : tensor<8x16xf32>
      %6 = sdy.sharding_constraint %w <@empty_mesh, [{?}, {}]> : tensor<8x16xf32>
      %7 = stablehlo.subtract %5, %6 : tensor<8x16xf32>
      stablehlo.return %7 : tensor<8x16xf32>
    }
    %8 = sdy.manual_computation(%4) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x", ?}, {?}]>] manual_axes={"x"} (%b: tensor<4x16xf32>) {
      %9 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : tensor<4x16xf32>
      sdy.return %9 : tensor<4x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %10 = stablehlo.transpose %8, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    return %2, %10 : tensor<8x16xf32>, tensor<16x8xf32>
  }
}
