import type { ReactNode } from "react";
import { Icon } from "./icon";

/** An error that concerns the whole form. */
export function FormError({ children }: { children: ReactNode }) {
  return (
    <p className="flex items-start gap-2 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger">
      <span className="mt-0.5">
        <Icon name="warning" size={16} />
      </span>
      {children}
    </p>
  );
}
