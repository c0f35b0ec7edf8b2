// Buttons, larger on touch screens. Each has a visible text or an accessible label.
import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icon";

type Look = "primary" | "plain" | "quiet" | "danger";

const looks: Record<Look, string> = {
  primary: "bg-accent text-accent-ink hover:brightness-110 disabled:bg-hover disabled:text-faint",
  plain: "border border-edge bg-raised text-ink hover:bg-hover disabled:text-faint",
  quiet: "text-soft hover:bg-hover hover:text-ink disabled:text-faint",
  danger: "bg-danger-wash text-danger hover:brightness-95 disabled:text-faint",
};

interface ButtonProps extends ComponentProps<"button"> {
  look?: Look;
  icon?: IconName;
}

export function Button({ look = "plain", icon, className = "", children, type = "button", ...rest }: ButtonProps) {
  return (
    <button
      type={type}
      className={`inline-flex min-h-9 items-center justify-center gap-2 rounded-md px-3 text-sm font-medium transition-colors pointer-coarse:min-h-11 ${looks[look]} ${className}`}
      {...rest}
    >
      {icon !== undefined && <Icon name={icon} size={16} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ComponentProps<"button">, "aria-label" | "title"> {
  /** The action: the accessible name and the tooltip. */
  label: string;
  /** What the action applies to, if several buttons have the same label: added to the accessible name. */
  target?: string;
  icon: IconName;
  look?: Look;
  size?: "small" | "normal";
  mirrored?: boolean;
  /** The displayed key combination of the same action, added to the tooltip. */
  keys?: string;
}

export function IconButton({
  label,
  target,
  icon,
  look = "quiet",
  size = "normal",
  mirrored = false,
  keys,
  className = "",
  type = "button",
  ...rest
}: IconButtonProps) {
  const measure = size === "small" ? "size-7 pointer-coarse:size-10" : "size-9 pointer-coarse:size-11";
  return (
    <button
      type={type}
      aria-label={target === undefined ? label : `${label}: ${target}`}
      data-tooltip={label}
      data-keys={keys}
      className={`inline-flex shrink-0 items-center justify-center rounded-md transition-colors ${measure} ${looks[look]} ${className}`}
      {...rest}
    >
      <Icon name={icon} size={size === "small" ? 16 : 18} mirrored={mirrored} />
    </button>
  );
}
