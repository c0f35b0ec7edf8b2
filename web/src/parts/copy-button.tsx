// A button that copies text and confirms it by its icon and label.
import { useEffect, useState } from "react";
import { IconButton } from "../controls/button";
import type { IconName } from "../controls/icon";
import { useLocalization } from "../messages/localization";
import { copyText } from "./export-text";
import { announce } from "./announcements";

interface CopyButtonProps {
  label: string;
  /** Returns the text to copy; called on click. */
  text: () => string;
  icon?: IconName;
  attributes?: Record<`data-${string}`, string>;
  size?: "small" | "normal";
}

export function CopyButton({ label, text, icon = "copy", attributes, size = "small" }: CopyButtonProps) {
  const { t } = useLocalization();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    const done = await copyText(text());
    setCopied(done);
    announce(t(done ? "transcript.copied" : "transcript.copy_refused"));
  };
  return (
    <IconButton
      {...attributes}
      size={size}
      icon={copied ? "check" : icon}
      label={copied ? t("transcript.copied") : label}
      onClick={() => void copy()}
    />
  );
}
