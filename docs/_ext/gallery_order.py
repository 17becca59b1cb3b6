"""The order of the examples in the gallery: from what the model does to what is proved about it."""

ORDER = (
    "correlated_groups",
    "path_with_clusters",
    "one_standard_error",
    "digits",
    "completing_digits",
    "stability",
    "knockoffs",
    "unpenalized_covariates",
    "sparse_text",
    "relaxed_fit",
    "sample_weights",
    "shared_selection",
    "memory_map",
    "dask",
    "certificate",
    "screening_rules",
    "any_solver",
    "network",
    "paper_in_small",
)


class ReadingOrder:
    """Sort key of file names for sphinx-gallery; examples that are not listed come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file_name: str) -> tuple[int, str]:
        """Place of an example, and its name to tell those apart that have none."""
        name = file_name.removeprefix("plot_").removesuffix(".py")
        return ORDER.index(name) if name in ORDER else len(ORDER), name
