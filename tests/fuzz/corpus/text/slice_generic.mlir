"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3xi32>) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<3xi32>):
    %0 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<3xi32>) -> tensor<1xi32>
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
