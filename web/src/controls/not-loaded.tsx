import type { ReactNode } from "react";
import { Button } from "./button";

/** Says that something was not loaded; pressing it tries again. */
export function NotLoaded({ again, children }: { again: () => unknown; children: ReactNode }) {
  return (
    <Button icon="retry" className="my-3 w-fit" onClick={() => void again()}>
      {children}
    </Button>
  );
}
