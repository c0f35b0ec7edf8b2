// The button that makes a new chat temporary, and the notice that explains what that means.
import { Icon } from "../../controls/icon";
import { useLocalization } from "../../messages/localization";

interface ToggleProps {
  on: boolean;
  /** While the choice is being stored. */
  disabled: boolean;
  onChange: (on: boolean) => void;
}

export function TemporaryToggle({ on, disabled, onChange }: ToggleProps) {
  const { t } = useLocalization();
  return (
    <button
      type="button"
      aria-pressed={on}
      aria-disabled={disabled || undefined}
      onClick={() => disabled || onChange(!on)}
      className="inline-flex h-9 min-w-0 items-center gap-1.5 rounded-md px-2.5 text-sm text-soft transition-colors hover:bg-hover hover:text-ink aria-pressed:bg-hover aria-pressed:font-medium aria-pressed:text-ink pointer-coarse:h-11"
    >
      <Icon name="clock" size={16} />
      {/* A phone has no room for it beside the other buttons; the notice says it. */}
      <span className="truncate max-sm:sr-only">{t("composer.temporary")}</span>
    </button>
  );
}

export function TemporaryNotice({ on }: { on: boolean }) {
  const { t } = useLocalization();
  return (
    <p role="status" className="mb-2 flex gap-2 rounded-md bg-sunken px-3 py-2 text-sm text-soft empty:hidden">
      {on && (
        <>
          <span className="mt-0.5">
            <Icon name="clock" size={16} />
          </span>
          {t("composer.temporary.notice")}
        </>
      )}
    </p>
  );
}
