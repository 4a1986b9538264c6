// Package deploy holds no code, only what puts rolltap next to a model server and shows how it does: manifests, a compose file, the
// image's scripts, dashboard and alerts. Its README is the way in.
//
// The tests here are the ones that need nothing but this module, so that renaming a series breaks the build and not a dashboard.
// What needs Kubernetes' types, kustomize, a parser of queries or a Prometheus server is in the module e2e/deploy.
package deploy
