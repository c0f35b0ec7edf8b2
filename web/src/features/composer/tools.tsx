// The menu with the tools that the next messages may use, and with the location of the conversation.
import { useRef, useState } from "react";
import { Icon } from "../../controls/icon";
import { Menu } from "../../controls/menu";
import { deferred } from "../../controls/deferred";
import { useToolChoices } from "../../api/tool-choice";
import { useLocalization } from "../../messages/localization";

const ToolItems = deferred(() => import("./tool-items").then((m) => m.ToolItems), { onFailure: () => {} });

const LocationDialog = deferred(() => import("./location-dialog").then((m) => m.LocationDialog), {
  onFailure: ({ onClose }) => onClose(),
});

interface ToolsProps {
  conversation: string;
  /** Whether the service has the conversation. */
  isStored: boolean;
}

export function ToolsMenu({ conversation, isStored }: ToolsProps) {
  const { t } = useLocalization();
  const button = useRef<HTMLButtonElement>(null);
  const [locating, setLocating] = useState(false);
  const choice = useToolChoices(({ byID }) => byID[conversation]);
  const off = (choice?.off?.length ?? 0) + (choice?.web_search === false ? 1 : 0);
  const label = off === 0 ? t("composer.tools") : t("composer.tools.off", { count: off });
  return (
    <>
      <Menu
        side="top"
        trigger={
          <button
            ref={button}
            type="button"
            aria-label={label}
            data-tooltip={label}
            className={`relative inline-flex size-9 shrink-0 items-center justify-center rounded-md transition-colors hover:bg-hover hover:text-ink pointer-coarse:size-11 ${off === 0 ? "text-soft" : "bg-hover text-warning"}`}
          >
            <Icon name="tool" />
          </button>
        }
      >
        <ToolItems conversation={conversation} isStored={isStored} onLocation={() => setLocating(true)} />
      </Menu>
      {locating && (
        <LocationDialog
          key={conversation}
          conversation={conversation}
          onClose={() => setLocating(false)}
          returnTo={() => button.current}
        />
      )}
    </>
  );
}
