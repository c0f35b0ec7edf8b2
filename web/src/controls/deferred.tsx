// Components whose code is loaded later than the app.
import { useEffect, useEffectEvent, useState, type ComponentType, type ReactNode } from "react";
import { useLocalization, type Localization } from "../messages/localization";
import { loadable } from "./loadable";
import { toast } from "./toast";

type Deferred<P> = ((props: P) => ReactNode) & {
  /** Starts to load the code before the component is rendered. */
  preload(): Promise<unknown>;
};

interface Options<P> {
  /** Rendered until the code is loaded. */
  Placeholder?: ComponentType<P>;
  /** Called when the code cannot be loaded, to close what was opened. Without it, rendering throws the error. */
  onFailure?: (props: P) => void;
}

/** Says that a part of the app could not be loaded. After an upgrade of the service, only the reloaded page has it. */
export function reportPartFailure(t: Localization["t"]): void {
  const action = { label: t("pages.error.reload"), run: () => location.reload() };
  toast(t("pages.part_failed"), { kind: "problem", action });
}

/**
 * Returns a component whose code is loaded when it is first rendered or preloaded. After a failure, the next component
 * that is mounted tries again.
 *
 * Unlike React.lazy, it is shown as soon as it is loaded: React delays content that replaces a placeholder of Suspense
 * by 0.3 s.
 */
export function deferred<P extends object>(
  load: () => Promise<ComponentType<P>>,
  { Placeholder, onFailure }: Options<P> = {},
): Deferred<P> {
  const component = loadable(load);
  function DeferredComponent(props: P) {
    const [ready, setReady] = useState(component.value !== null);
    const [failure, setFailure] = useState<{ error: unknown } | null>(null);
    const { t } = useLocalization();
    const fail = useEffectEvent((error: unknown) => {
      if (onFailure === undefined) return setFailure({ error });
      reportPartFailure(t);
      onFailure(props);
    });
    useEffect(() => {
      if (ready) return;
      let current = true;
      component.load().then(
        () => current && setReady(true),
        (error: unknown) => current && fail(error),
      );
      return () => void (current = false);
    }, [ready]);
    if (failure !== null) throw failure.error;
    const Loaded = component.value;
    if (Loaded !== null) return <Loaded {...props} />;
    return Placeholder && <Placeholder {...props} />;
  }
  return Object.assign(DeferredComponent, { preload: component.load });
}
