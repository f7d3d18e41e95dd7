// Where somebody looks: one project, or the whole platform. The place is the first word of every address, and what may
// be done there follows from the caller's grants.
import type { Me, Permission, Project } from "./api/types";

export const PLATFORM = "platform";

export interface Place {
  /** A project's id, or `platform`. */
  id: string;
  name: string;
  isPlatform: boolean;
  /** The API's routes of this place begin with this. */
  path: string;
  permissions: Set<Permission>;
}

export function may(place: Place, permission: Permission): boolean {
  return place.permissions.has(permission);
}

/** The places that somebody may look at, in the order they are offered. `projects` are those the platform lists. */
export function placesOf(me: Me, projects: Project[]): Place[] {
  const everywhere = held(me, (grant) => !grant.org_id && !grant.project_id);
  const known = new Map<string, { id: string; org_id: string; slug: string }>();
  for (const project of projects) known.set(project.id, project);
  for (const { project_id, org_id, project_slug } of me.grants) {
    if (!project_id || !org_id || known.has(project_id)) continue;
    known.set(project_id, { id: project_id, org_id, slug: project_slug ?? project_id });
  }
  const inside = [...known.values()].map((project): Place => {
    const here = held(
      me,
      (grant) => grant.project_id === project.id || (grant.org_id === project.org_id && !grant.project_id),
    );
    return {
      id: project.id,
      name: project.slug,
      isPlatform: false,
      path: `/projects/${project.id}`,
      permissions: new Set([...everywhere, ...here]),
    };
  });
  if (everywhere.size === 0) return inside;
  const platform = { id: PLATFORM, name: "All projects", isPlatform: true, path: "/admin", permissions: everywhere };
  return [platform, ...inside];
}

function held(me: Me, where: (grant: Me["grants"][number]) => boolean): Set<Permission> {
  return new Set(me.grants.filter(where).flatMap((grant) => grant.permissions));
}
