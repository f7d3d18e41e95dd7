//! Layers of limits only narrow, in whatever order they come, and the one that took something away is named: said of random layers,
//! because examples would only show the pairs somebody thought of.

use proptest::prelude::*;
use proptest::{option, sample};

use super::*;

fn limits() -> impl Strategy<Value = Limits> {
    let modes = option::of(sample::subsequence(OperatingMode::ALL.to_vec(), 0..=2));
    let scopes = option::of(sample::subsequence(ControlPlaneScope::ALL.to_vec(), 0..=3));
    (modes, scopes, option::of(0_u32..10)).prop_map(|(modes, scopes, max_gpu_count)| Limits {
        allowed_operating_modes: modes.map(BTreeSet::from_iter),
        allowed_control_plane_scopes: scopes.map(BTreeSet::from_iter),
        max_gpu_count,
    })
}

fn layers() -> impl Strategy<Value = Vec<(Layer, Limits)>> {
    (limits(), limits(), limits(), limits()).prop_map(|(manifest, platform, org, project)| {
        vec![
            (Layer::Manifest, manifest),
            (Layer::Platform, platform),
            (Layer::Org, org),
            (Layer::Project, project),
        ]
    })
}

/// Everything that `inner` allows, `outer` allows too.
fn within(inner: &Effective, outer: &Effective) -> bool {
    let gpus = match (inner.max_gpu_count, outer.max_gpu_count) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(inner), Some(outer)) => inner <= outer,
    };
    inner.operating_modes.is_subset(&outer.operating_modes)
        && inner.control_plane_scopes.is_subset(&outer.control_plane_scopes)
        && inner.pairs().iter().all(|pair| outer.pairs().contains(pair))
        && gpus
}

proptest! {
    #[test]
    fn no_layer_can_widen(layers in layers()) {
        let all = narrow(&layers);
        for place in 0..layers.len() {
            let mut others = layers.clone();
            others.remove(place);
            prop_assert!(within(&all, &narrow(&others)), "{:?} added something", layers[place].0);
            prop_assert!(within(&all, &narrow(&layers[place..=place])), "{:?} was passed over", layers[place].0);
        }
    }

    #[test]
    fn the_order_in_which_layers_are_told_does_not_matter(layers in layers(), turn in 0_usize..4) {
        let mut turned = layers.clone();
        turned.rotate_left(turn);
        prop_assert_eq!(narrow(&turned), narrow(&layers));
    }

    #[test]
    fn what_is_missing_is_told_once_with_a_layer_that_forbids_it(layers in layers()) {
        let effective = narrow(&layers);
        for mode in OperatingMode::ALL {
            let told: Vec<_> = effective.removed.iter().filter(|r| r.option == Choice::Mode(mode)).collect();
            prop_assert_eq!(told.len(), usize::from(!effective.operating_modes.contains(&mode)));
            for removal in told {
                let own = &layers.iter().find(|(layer, _)| *layer == removal.layer).unwrap().1;
                prop_assert!(!own.allows_mode(mode));
            }
        }
        for scope in ControlPlaneScope::ALL {
            let told = effective.removed.iter().filter(|r| r.option == Choice::Scope(scope)).count();
            prop_assert_eq!(told, usize::from(!effective.control_plane_scopes.contains(&scope)));
        }
    }

    #[test]
    fn an_override_is_refused_exactly_when_it_asks_for_more_than_is_left(layers in layers(), asked in limits()) {
        let outer = narrow(&layers[..3]);
        let alone = narrow(&[(Layer::Project, asked.clone())]);
        let named = |wanted: &Limits| Effective {
            // What an override does not mention it does not ask for.
            operating_modes: wanted.allowed_operating_modes.clone().unwrap_or_default(),
            control_plane_scopes: wanted.allowed_control_plane_scopes.clone().unwrap_or_default(),
            max_gpu_count: alone.max_gpu_count.or(outer.max_gpu_count),
            removed: vec![],
        };
        prop_assert_eq!(outer.widened_by(&asked).is_empty(), within(&named(&asked), &outer));
    }
}

#[test]
fn the_layer_that_took_something_away_is_named() {
    let managed_too = Limits::default();
    let effective = narrow(&[
        (Layer::Manifest, managed_too),
        (Layer::Platform, Limits::where_platform_managed_is(false)),
        (Layer::Project, Limits { max_gpu_count: Some(2), ..Limits::default() }),
    ]);
    assert_eq!(
        serde_json::to_value(&effective.removed).unwrap(),
        serde_json::json!([
            { "layer": "platform", "field": "allowed_operating_modes", "value": "platform_managed" },
            { "layer": "platform", "field": "allowed_control_plane_scopes", "value": "platform" },
            { "layer": "project", "field": "max_gpu_count", "value": 2 },
        ])
    );
    assert_eq!(effective.pairs().len(), 2);
    let asked = Limits { max_gpu_count: Some(3), ..Limits::default() };
    assert_eq!(effective.widened_by(&asked), [effective.removed[2]]);
}
