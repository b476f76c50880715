module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  sdy.mesh @mx = <[], device_ids=[0]>
  sdy.mesh @"my mesh" = <["a b"=4], device_ids=[3, 2, 1, 0]>
  func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x8xf32> {
    %0 = sdy.all_gather [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x8xf32>
    %1 = sdy.all_slice [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{"x":(1)2}, {}], replicated={"y"}> : tensor<8x8xf32>
    %3 = sdy.propagation_barrier %2 allowed_direction=FORWARD : tensor<8x8xf32>
    %4 = sdy.reshard %3 <@mesh, [{"x"}p1, {"y", ?}p0]> : tensor<8x8xf32>
    %5 = sdy.all_to_all [{"x"}: 0->1] %4 out_sharding=<@mesh, [{}, {"y", "x"}]> : tensor<8x8xf32>
    %6 = sdy.collective_permute %5 out_sharding=<@mesh, [{}, {"y", "x"}]> : tensor<8x8xf32>
    %7 = sdy.sharding_constraint %6 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %8 = stablehlo.add %7, %7 : tensor<8x8xf32>
    %9 = sdy.data_flow_edge %8 sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %10 = sdy.named_computation<"foo">(%9) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>] (%arg1: tensor<8x8xf32>) {
      sdy.return %arg1 : tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %11 = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
    %12 = sdy.sharding_constraint %10 <@mesh, [{}, {}]> : tensor<8x8xf32>
    sdy.sharding_group %12 group_id=7 : tensor<8x8xf32>
    %13 = sdy.replicated_to_unreduced {"x"} %12 out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : tensor<8x8xf32>
    %14 = sdy.sharding_constraint %13 <mesh<["z"=2], device_ids=[1, 0]>, [{}, {}], unreduced={"z"}> : tensor<8x8xf32>
    %15 = stablehlo.custom_call @foo(%14) {flag, num = array<i64: 1, 2>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, k]) {i=8, j=2, k=4} reduction={j} need_replication={i} blocked_propagation={k}, custom>, x.y} : (tensor<8x8xf32>) -> tensor<8x4xf32>
    return %14 : tensor<8x8xf32>
  }
}
