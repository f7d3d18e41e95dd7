// What a service account can be given, and what it usually is.
import { type Permission, PROJECT_PERMISSIONS, type ProjectPermission } from "../api/types";

/** Nobody gives away more than they have. */
export function offered(held: ReadonlySet<Permission>): ProjectPermission[] {
  return PROJECT_PERMISSIONS.filter((key) => held.has(key));
}

/** As the platform itself chooses where nothing is said: drive instances, publish artifacts, read runs. */
export function isUsual(key: ProjectPermission): boolean {
  const others = ["apps.catalog.read", "apps.artifact.read", "apps.artifact.publish", "workflows.read"];
  return key.startsWith("apps.instance.") || others.includes(key);
}
