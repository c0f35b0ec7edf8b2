// A button that copies something and says so where it stands.
import { useEffect, useState } from "react";
import { IconButton } from "../controls/button";
import type { IconName } from "../controls/icon";
import { useSpeech } from "../words/speech";
import { copyText } from "./keep";
import { announce } from "./voice";

interface CopyButtonProps {
  label: string;
  /** Gives the text when it is asked for. */
  text: () => string;
  icon?: IconName;
  marks?: Record<`data-${string}`, string>;
}

export function CopyButton({ label, text, icon = "copy", marks }: CopyButtonProps) {
  const { say } = useSpeech();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    const done = await copyText(text());
    setCopied(done);
    announce(say(done ? "transcript.copied" : "transcript.copy_refused"));
  };
  return <IconButton {...marks} size="small" icon={copied ? "check" : icon} label={copied ? say("transcript.copied") : label} onClick={() => void copy()} />;
}
