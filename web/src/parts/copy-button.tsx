// A button that copies text and confirms it by its icon and label.
import { useEffect, useState } from "react";
import { Button, IconButton } from "../controls/button";
import type { IconName } from "../controls/icon";
import { useLocalization } from "../messages/localization";
import { announce } from "./announcements";

interface CopyButtonProps {
  label: string;
  /** Copies on click; returns whether the browser allowed it. */
  copy: () => Promise<boolean>;
  /** A visible text, part of the label. */
  shown?: string;
  icon?: IconName;
  attributes?: Record<`data-${string}`, string>;
  size?: "small" | "normal";
}

export function CopyButton({ label, copy, shown, icon = "copy", attributes, size = "small" }: CopyButtonProps) {
  const { t } = useLocalization();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const run = async () => {
    const done = await copy().catch(() => false);
    setCopied(done);
    announce(t(done ? "transcript.copied" : "transcript.copy_refused"));
  };
  const done = t("transcript.copied");
  if (shown !== undefined)
    return (
      <Button
        {...attributes}
        look="quiet"
        icon={copied ? "check" : icon}
        aria-label={copied ? done : label}
        className="min-h-7 px-2 text-xs pointer-coarse:min-h-10"
        onClick={() => void run()}
      >
        {copied ? done : shown}
      </Button>
    );
  return (
    <IconButton
      {...attributes}
      size={size}
      icon={copied ? "check" : icon}
      label={copied ? done : label}
      onClick={() => void run()}
    />
  );
}
