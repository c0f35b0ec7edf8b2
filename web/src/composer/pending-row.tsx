// A row of the list above the composer: one line with the text, its state and its actions. On touch screens the actions
// are in a menu.
import type { ReactNode } from "react";
import { Button, IconButton } from "../controls/button";
import { Icon, type IconName } from "../controls/icon";
import { touchScreen, useMedia } from "../controls/media";
import { Menu, MenuItem } from "../controls/menu";
import { useLocalization } from "../messages/localization";

export interface RowAction {
  icon: IconName;
  label: string;
  mirrored?: boolean;
  /** Whether the label is visible next to the icon. */
  labelled?: boolean;
  run: () => void;
}

interface RowProps {
  icon: IconName;
  mirrored?: boolean;
  text: string;
  state: string;
  actions?: readonly RowAction[];
  disabled?: boolean;
  children?: ReactNode;
}

/** The number of characters of a message by which its buttons are named. */
const nameLength = 40;

export function PendingRow({
  icon,
  mirrored = false,
  text,
  state,
  actions = [],
  disabled = false,
  children,
}: RowProps) {
  const { t } = useLocalization();
  const touch = useMedia(touchScreen);
  const line = text.replace(/\s+/g, " ").trim();
  const name = line.length > nameLength ? `${line.slice(0, nameLength).trimEnd()}…` : line;
  return (
    <li className="px-3 text-sm">
      <div className="flex min-h-9 items-center gap-2.5 pointer-coarse:min-h-11">
        <span className="text-faint">
          <Icon name={icon} size={16} mirrored={mirrored} />
        </span>
        <div className="flex min-w-0 grow flex-col sm:flex-row sm:items-center sm:gap-3">
          {/* As wide as its text: text of the other direction stays next to the icon. */}
          <div className="flex min-w-0 grow">
            <p dir="auto" title={text} className="truncate">
              {line}
            </p>
          </div>
          <p className="shrink-0 text-xs text-faint">{state}</p>
        </div>
        {touch && actions.length > 0 ? (
          <Menu
            side="top"
            align="end"
            trigger={
              <IconButton
                icon="dots"
                label={t("composer.pending.actions")}
                target={name}
                disabled={disabled}
                className="-me-2"
              />
            }
          >
            {actions.map((action) => (
              <MenuItem key={action.label} icon={action.icon} onSelect={action.run}>
                {action.label}
              </MenuItem>
            ))}
          </Menu>
        ) : (
          actions.length > 0 && (
            <div className="-me-1.5 flex shrink-0 items-center">
              {actions.map((action) =>
                action.labelled ? (
                  <Button
                    key={action.label}
                    look="quiet"
                    icon={action.icon}
                    aria-label={`${action.label}: ${name}`}
                    disabled={disabled}
                    onClick={action.run}
                    className="min-h-7 px-2 text-xs"
                  >
                    {action.label}
                  </Button>
                ) : (
                  <IconButton
                    key={action.label}
                    size="small"
                    icon={action.icon}
                    label={action.label}
                    target={name}
                    {...(action.mirrored === undefined ? {} : { mirrored: action.mirrored })}
                    disabled={disabled}
                    onClick={action.run}
                  />
                ),
              )}
            </div>
          )
        )}
      </div>
      {children}
    </li>
  );
}
