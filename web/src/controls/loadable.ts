/** A value, for example a module, that is loaded when it is first needed; null: it is not loaded. */
export interface Loadable<T> {
  readonly value: T | null;
  /** Loads the value once. After a failure, the next call tries again. */
  load(): Promise<T>;
}

export function loadable<T>(load: () => Promise<T>): Loadable<T> {
  let loading: Promise<T> | null = null;
  const loaded = {
    value: null as T | null,
    load: () =>
      (loading ??= load().then(
        (value) => (loaded.value = value),
        (failure: unknown) => {
          loading = null;
          throw failure;
        },
      )),
  };
  return loaded;
}
