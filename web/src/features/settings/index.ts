// The settings of the account and of this device.
import { lazyRouteComponent } from "@tanstack/react-router";

export const SettingsPage = lazyRouteComponent(() => import("./settings"), "SettingsPage");
