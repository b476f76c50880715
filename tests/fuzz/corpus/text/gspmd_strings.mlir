module @m attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%arg0: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1,2]3,1,2,0 last_tile_dim_replicate}"}, %arg1: tensor<8x4xf32> {mhlo.sharding = "{maximal device=1}"}) -> (tensor<8x4xf32>, tensor<8x4xf32> {mhlo.sharding = "{devices=[1,2,2]3,2,1,0 last_tile_dims={unreduced}}"}) {
    %0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "", mhlo.sharding = "{unknown shard_as 0}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.custom_call @Sharding(%arg1) {backend_config = "unspecified_dims=[1]", mhlo.sharding = "{unknown shard_like 0}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2:2 = stablehlo.optimization_barrier {mhlo.sharding = "{{replicated}, {devices=[4,1]3,1,2,0}}"} %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
    return %2#0, %2#1 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
