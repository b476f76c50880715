"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, !stablehlo.token) -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<8xf32>, %arg1: !stablehlo.token):
    %0 = "stablehlo.send"(%arg0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<8xf32>, !stablehlo.token) -> !stablehlo.token
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
