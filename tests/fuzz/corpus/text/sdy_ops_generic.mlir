"builtin.module"() ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=4, "y"=2]>, sym_name = "mesh"}> : () -> ()
  "sdy.mesh"() <{mesh = #sdy.mesh<[], device_ids=[0]>, sym_name = "mx"}> : () -> ()
  "sdy.mesh"() <{mesh = #sdy.mesh<["a b"=4], device_ids=[3, 2, 1, 0]>, sym_name = "my mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}], function_type = (tensor<8x8xf32>) -> tensor<8x8xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8x8xf32>):
    %0 = "sdy.all_gather"(%arg0) <{gathering_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, out_sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = "sdy.all_slice"(%0) <{out_sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>, slicing_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = "sdy.sharding_constraint"(%1) <{sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {}], replicated={"y"}>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = "sdy.propagation_barrier"(%2) <{allowed_direction = 1 : i32}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = "sdy.reshard"(%3) <{sharding = #sdy.sharding<@mesh, [{"x"}p1, {"y", ?}p0]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = "sdy.all_to_all"(%4) <{out_sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>, params = #sdy<all_to_all_param_list[{"x"}: 0->1]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %6 = "sdy.collective_permute"(%5) <{out_sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %7 = "sdy.sharding_constraint"(%6) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %8 = "stablehlo.add"(%7, %7) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %9 = "sdy.data_flow_edge"(%8) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %10 = "sdy.named_computation"(%9) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>, name = "foo", out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}> ({
    ^bb0(%arg1: tensor<8x8xf32>):
      "sdy.return"(%arg1) : (tensor<8x8xf32>) -> ()
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %11 = "sdy.constant"() <{value = dense<1.000000e+00> : tensor<8x8xf32>}> : () -> tensor<8x8xf32>
    %12 = "sdy.sharding_constraint"(%10) <{sharding = #sdy.sharding<@mesh, [{}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    "sdy.sharding_group"(%12) <{group_id = 7 : i64}> : (tensor<8x8xf32>) -> ()
    %13 = "sdy.replicated_to_unreduced"(%12) <{axes = #sdy<axis_ref_list{"x"}>, out_sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %14 = "sdy.sharding_constraint"(%13) <{sharding = #sdy.sharding<mesh<["z"=2], device_ids=[1, 0]>, [{}, {}], unreduced={"z"}>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %15 = "stablehlo.custom_call"(%14) <{call_target_name = "foo"}> {flag, num = array<i64: 1, 2>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, k]) {i=8, j=2, k=4} reduction={j} need_replication={i} blocked_propagation={k}, custom>, x.y} : (tensor<8x8xf32>) -> tensor<8x4xf32>
    "func.return"(%14) : (tensor<8x8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
