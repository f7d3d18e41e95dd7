// What runs an app, in words.
const BACKENDS: Record<string, string> = {
  launchable_oci: "a container",
  docker_compose: "a Compose stack",
  slurm: "Slurm",
  ray: "Ray",
  k8s: "Kubernetes",
  bare_metal: "bare metal",
};

export function backendName(backend: string): string {
  return BACKENDS[backend] ?? backend.replaceAll("_", " ");
}

/** `3 cores`, `1 core`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
