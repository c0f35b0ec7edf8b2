// A text that is folded. What searches the page still finds it, and unfolds it then.
import { useEffectEvent, useLayoutEffect, useRef } from "react";

export function Folded({ onFound, children }: { onFound: () => void; children: string }) {
  const text = useRef<HTMLSpanElement>(null);
  const found = useEffectEvent(onFound);
  useLayoutEffect(() => {
    const element = text.current!;
    element.setAttribute("hidden", "until-found"); // React knows no values of this attribute
    const listener = () => found();
    element.addEventListener("beforematch", listener);
    return () => element.removeEventListener("beforematch", listener);
  }, []);
  return (
    <span ref={text} className="block">
      {children}
    </span>
  );
}
