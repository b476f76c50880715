"builtin.module"() ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{function_type = (tensor<4x4xf32>) -> tensor<4x4xf32>, sym_name = "<lambda>", sym_visibility = "private"}> ({
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8x16xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8x16xf32>):
    %0 = "sdy.manual_computation"(%arg0) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>, manual_axes = #sdy<manual_axes{"x", "y"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}> ({
    ^bb0(%arg1: tensor<4x4xf32>):
      %1 = "func.call"(%arg1) <{callee = @"<lambda>"}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
      "sdy.return"(%1) : (tensor<4x4xf32>) -> ()
    }) : (tensor<8x16xf32>) -> tensor<4x16xf32>
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
