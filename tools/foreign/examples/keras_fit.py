import os
os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((8, 8, 1)), keras.layers.Conv2D(4, 3),
                          keras.layers.BatchNormalization(), keras.layers.Flatten(),
                          keras.layers.Dense(3, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
rng = np.random.default_rng(0)
x, y = rng.normal(size=(64, 8, 8, 1)).astype("float32"), rng.integers(0, 3, 64)
history = model.fit(x, y, epochs=2, batch_size=16, verbose=0, shuffle=False)
print([round(v, 3) for v in history.history["loss"]])
print(round(float(model.evaluate(x, y, verbose=0)[0]), 3))
