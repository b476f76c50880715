"builtin.module"() ({
  "func.func"() <{function_type = (tensor<i32>, tensor<i32>) -> tensor<i32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
    %0 = "stablehlo.while"(%arg0) ({
    ^bb0(%arg5: tensor<i32>):
      %4 = "stablehlo.compare"(%arg5, %arg1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%4) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg2: tensor<i32>):
      %1 = "stablehlo.while"(%arg2) ({
      ^bb0(%arg4: tensor<i32>):
        %3 = "stablehlo.compare"(%arg4, %arg1) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%3) : (tensor<i1>) -> ()
      }, {
      ^bb0(%arg3: tensor<i32>):
        %2 = "stablehlo.add"(%arg3, %arg2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%2) : (tensor<i32>) -> ()
      }) : (tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%1) : (tensor<i32>) -> ()
    }) {mhlo.frontend_attributes = {k = "v"}} : (tensor<i32>) -> tensor<i32>
    "func.return"(%0) : (tensor<i32>) -> ()
  }) : () -> ()
}) : () -> ()
